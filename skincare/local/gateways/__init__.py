"""Midtrans and Xendit on this machine, for trying and testing: honest, not kind.

They speak the gateways' APIs as their documentation and their official clients do, show a payment
page, and call the shop's webhooks with the gateways' own signatures and retries, on a clock that
can be moved. What no source settles is a choice of ours, marked GUESS where it is made.

No money moves, nothing leaves this machine, and production code never imports it.
"""
