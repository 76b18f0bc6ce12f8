"""Serve the window until the end of this process.

python -m skincare.local.window --port 8080 --api-url http://127.0.0.1:8000 \
    --mail-url http://127.0.0.1:8025
"""

import argparse

from skincare.local.window.server import Window


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-url", required=True, help="of the shop, as a browser reaches it")
    parser.add_argument("--mail-url", required=True, help="of the mail server's page")
    options = parser.parse_args()
    window = Window(
        host=options.host, port=options.port, api_url=options.api_url, mail_url=options.mail_url
    )
    print(f"The window listens on port {window.port}", flush=True)
    window.run()


if __name__ == "__main__":
    main()
