"""The operator's tools over the whole shop: commands, and the pages of the admin."""
