"""Operations as a card runs them: fused, addressed by index, each a plain torch reference and a Triton kernel."""
