"""The transport: real workers, a real SQS server, and a proxy between them that breaks calls."""
