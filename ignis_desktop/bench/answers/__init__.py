"""How well answers without generating are found: real texts and screens with questions, beside other ways."""
