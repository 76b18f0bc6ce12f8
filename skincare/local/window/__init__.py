"""A shop window for trying: products, cart, checkout, and an order that turns to "paid" by itself.

One page without a build step, on this machine only. It uses the public API as any shop's pages
would, from an origin of its own, and shows the emails beside the order.
"""
