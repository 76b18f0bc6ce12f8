#!/bin/sh
# What a container of this image does. `exec`, so that SIGTERM reaches the program that drains.
set -eu

case "${1:-}" in
    api) exec gunicorn skincare.wsgi ;;
    worker) exec celery -A skincare worker ;;
    relay) exec python manage.py relay_outbox ;;
    migrate) exec python manage.py migrate --no-input ;;
    manage) shift && exec python manage.py "$@" ;;
    *)
        echo "Say what to run: api, worker, relay, migrate, or manage COMMAND [ARGUMENT…]" >&2
        exit 64
        ;;
esac
