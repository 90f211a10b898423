"""How Ember was trained: data makers, training, evaluation and export. See README.md."""
