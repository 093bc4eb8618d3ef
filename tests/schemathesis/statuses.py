#!/usr/bin/env python3
# tests/schemathesis/statuses.py
# What the operations answered, from the file that hooks.py writes. Fails where one never answered
# 2xx, which then was not tested: statuses.py FILE
import json
import sys

# Only what a case made just before can be found, which random identifiers are not.
SELDOM = {"GET /console/{file}", "GET /v1/models/{name}"}


def main(path):
    with open(path) as file:
        statuses = json.load(file)
    untested = []
    for operation, counts in statuses.items():
        print(f"{operation:45}", "  ".join(f"{code}: {n}" for code, n in counts.items()))
        if operation not in SELDOM and not any(code.startswith("2") for code in counts):
            untested.append(operation)
    print(sum(sum(counts.values()) for counts in statuses.values()), "requests")
    for operation in untested:
        print(f"{operation} never answered 2xx", file=sys.stderr)
    return 1 if untested or not statuses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
