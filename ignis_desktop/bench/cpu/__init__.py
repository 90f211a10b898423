"""``ignis bench cpu``: how fast the program is on this machine's processor, beside transformers if wanted.

Engine and peer each hold the model in a process of their own and measure in turn, so that whatever slows the machine
down slows both. The processes exchange lines of JSON with the one that asks.
"""
