"""Run both gateways until the end of this process: python -m skincare.local.gateways --port 8001

The secrets come from the environment: MIDTRANS_SERVER_KEY, XENDIT_SECRET_KEY,
XENDIT_CALLBACK_TOKEN.
"""

import argparse
import os

from skincare.local.gateways.simulator import Simulator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--public-url", default="", metavar="URL", help="where a browser reaches the payment pages"
    )
    parser.add_argument("--midtrans-webhook", default="", metavar="URL")
    parser.add_argument("--xendit-webhook", default="", metavar="URL")
    options = parser.parse_args()
    simulator = Simulator(
        host=options.host,
        port=options.port,
        public_url=options.public_url,
        midtrans_server_key=os.environ["MIDTRANS_SERVER_KEY"],
        xendit_secret_key=os.environ["XENDIT_SECRET_KEY"],
        xendit_callback_token=os.environ["XENDIT_CALLBACK_TOKEN"],
        midtrans_webhook=options.midtrans_webhook,
        xendit_webhook=options.xendit_webhook,
    )
    print(f"The gateways listen on {simulator.url}", flush=True)
    simulator.run()


if __name__ == "__main__":
    main()
