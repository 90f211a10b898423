"""Operations of the model: each a plain torch reference and, beside it, a Triton kernel."""
