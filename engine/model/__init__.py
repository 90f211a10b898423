"""The network: text decoder, vision tower, positions."""
