"""Order events: the contract, the outbox that sends them, the claim that makes them happen once."""
