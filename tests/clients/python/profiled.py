"""Keeps a processor busy under Pyroscope's agent for Python until the agent has sent its profile.

  profiled.py SERVER TOKEN SERVICE"""

import logging
import sys
import time

import pyroscope


def burn_time(seconds):
    end = time.process_time() + seconds
    total = 0
    while time.process_time() < end:
        total += sum(i * i for i in range(10000))
    return total


logging.basicConfig(level=logging.INFO, stream=sys.stderr)
server, token, service = sys.argv[1:4]
pyroscope.configure(
    application_name=service,
    server_address=server,
    basic_auth_username="anyone",
    basic_auth_password=token,
    tags={"region": "eu"},
    upload_interval=1,
    enable_logging=True,
)
burn_time(1.5)
pyroscope.shutdown()
print("done")
