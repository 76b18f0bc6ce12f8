"""Two releases side by side, as in every deployment and after every way back."""
