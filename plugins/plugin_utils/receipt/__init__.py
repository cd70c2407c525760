"""What was verified, with its conditions: the receipt and its words for the terminal."""
