# tests/tidy/api_fields.py
# docs/api_coverage.md names every field of every request body, and no other: each of its sections
# "## POST /v1/..." has a table of fields, which is compared with the OpenAPI document. That one is
# held to the parsers' own lists by src/api/openapi_test.cc.
import json
import re

from tree import Violation

DOCUMENT = "docs/api_coverage.md"
OPENAPI = "src/api/openapi/"


def check(tree):
    parts = tree.select(".json", under=OPENAPI)
    if not parts:
        return []
    if not tree.exists(DOCUMENT):
        return [Violation(DOCUMENT, 1, "api-fields", "is missing")]
    bodies, fields = read_openapi(tree, parts)
    out, covered = [], set()
    for number, title, rows in sections(tree.lines(DOCUMENT)):
        schemas = {bodies[path] for path in re.findall(r"/v1/[a-z_/]+", title) if path in bodies}
        if not title.startswith("POST ") or not schemas:
            continue
        covered |= schemas
        known = set().union(*(fields[schema] for schema in schemas))
        named = {name: line for line, name in rows}
        out += [Violation(DOCUMENT, number, "api-fields", f"{title} has no row for {name}")
                for name in sorted(known - named.keys())]
        out += [Violation(DOCUMENT, named[name], "api-fields", f"{title} takes no field {name}")
                for name in sorted(named.keys() - known)]
    out += [Violation(DOCUMENT, 1, "api-fields", f"no section is about the fields of {schema}")
            for schema in sorted(set(bodies.values()) - covered)]
    return out


def read_openapi(tree, parts):
    """{path: name of its JSON body's schema}, {name: {field}}"""
    bodies, fields = {}, {}
    for part in parts:
        document = json.loads(tree.text(part))
        for path, item in document.get("paths", {}).items():
            content = item.get("post", {}).get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            if schema:
                reference = schema.get("allOf", [schema])[0]["$ref"]
                bodies[path] = reference.rsplit("/", 1)[1]
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            fields[name] = set(schema.get("properties", {}))
    return bodies, fields


def sections(lines):
    """[(line, title, [(line, field)])]: the fields that the first column of its tables names,
    where the column is headed "field"; of `a.b` and `a[].b` that is a."""
    out, in_table = [], False
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            out.append((number, line[3:], []))
        cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else None
        in_table = bool(cells) and (in_table or cells[1] == "field")
        if in_table and out:
            out[-1][2].extend((number, re.split(r"[.\[]", word)[0])
                              for word in re.findall(r"`([^`]+)`", cells[1]))
    return out
