"""Where state lives: pages of keys and values, slots of recurrent state, the plan for both."""
