"""The shop: catalogue, stock, checkout, the life of an order, its emails and the search."""
