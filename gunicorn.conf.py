"""How the API is served. `gunicorn skincare.wsgi` reads this file from the working folder.

What depends on the machine comes from gunicorn's own variables: PORT (listens on all interfaces
then, else on 127.0.0.1:8000) and WEB_CONCURRENCY, the number of processes.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")

# Requests reach a thread only when they are complete. Its deadlines are in the settings.
worker_class = "skincare.web_server.BufferingWorker"
# A third for checkouts, for webhooks and for all others; each thread keeps a database connection.
threads = 6
worker_connections = 4000  # of one process; what comes above that waits to be accepted
timeout = 30  # seconds without a heartbeat until a process is replaced
graceful_timeout = 30  # seconds for the requests in flight at SIGTERM; ECS waits longer than that
keepalive = 75  # seconds; longer than the load balancer's 60, so that it is the one to hang up

# The heartbeat is a file that is touched every second: on a disk it can block, and the root file
# system of the container cannot be written to.
worker_tmp_dir = "/dev/shm"  # noqa: S108
control_socket_disable = True

logger_class = "skincare.telemetry.web_server.JSONLogger"
