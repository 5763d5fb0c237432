"""JSON schemas as those in share/: what of a value is not as a schema says. `tests/json_schema.py FILE.schema.json FILE...` says it of files."""
import glob
import json
import os
import re
import sys

SCHEMAS = {os.path.basename(path): json.load(open(path, encoding="utf-8")) for path in glob.glob("share/*.schema.json")}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": (int, float), "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "unevaluatedProperties",
         "propertyNames", "items", "minItems", "enum", "pattern", "minLength", "minimum", "maximum", "anyOf", "patternProperties", "minProperties", "maxItems"}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def resolve(ref, file):
    """The schema that a reference names, and its file."""
    name, path = ref.split("#")
    schema = SCHEMAS[name or file]
    for word in filter(None, path.split("/")[1:]):
        schema = schema[word]
    return schema, name or file


def named(schema, file):
    """The members that a schema and what it refers to describe."""
    names = set(schema.get("properties", {}))
    return names | named(*resolve(schema["$ref"], file)) if "$ref" in schema else names


def wrong_value(v, schema):
    types = schema.get("type", [])
    if types and not any(is_a(v, t) for t in ([types] if isinstance(types, str) else types)):
        yield "is no %s" % types
    if "enum" in schema and v not in schema["enum"]:
        yield "is none of %s" % schema["enum"]
    if isinstance(v, (int, float)) and not schema.get("minimum", v) <= v <= schema.get("maximum", v):
        yield "is out of range"
    if isinstance(v, str) and (len(v) < schema.get("minLength", 0) or not re.search(schema.get("pattern", ""), v)):
        yield "is not as it should be written"
    if isinstance(v, list) and not schema.get("minItems", 0) <= len(v) <= schema.get("maxItems", len(v)):
        yield "has too few or too many items"
    if isinstance(v, dict) and len(v) < schema.get("minProperties", 0):
        yield "has too few members"


def errors(v, schema, file, at="$"):
    """What of a value is not as the schema says, a line each."""
    assert set(schema) <= KNOWN, "a keyword that this test does not know: %s" % (set(schema) - KNOWN)
    yield from ("%s: %r %s" % (at, v, what) for what in wrong_value(v, schema))
    if "$ref" in schema:
        yield from errors(v, *resolve(schema["$ref"], file), at)
    if "anyOf" in schema:
        each = [list(errors(v, s, file, at)) for s in schema["anyOf"]]
        yield from [] if not all(each) else min(each, key=len)
    if isinstance(v, list) and "items" in schema:
        for i, item in enumerate(v):
            yield from errors(item, schema["items"], file, "%s[%d]" % (at, i))
    if not isinstance(v, dict):
        return
    yield from ("%s: %s is missing" % (at, name) for name in schema.get("required", []) if name not in v)
    others = schema.get("additionalProperties", {})
    for name, member in v.items():
        here = "%s.%s" % (at, name)
        if "propertyNames" in schema:
            yield from errors(name, schema["propertyNames"], file, here)
        matching = [s for pattern, s in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        for s in matching:
            yield from errors(member, s, file, here)
        if name in schema.get("properties", {}):
            yield from errors(member, schema["properties"][name], file, here)
        elif isinstance(others, dict) and not matching:
            yield from errors(member, others, file, here)
        if others is False and name not in schema["properties"] and not matching or \
                schema.get("unevaluatedProperties") is False and name not in named(schema, file):
            yield here + ": is not in the schema"


def main():
    wrong = ["%s: %s" % (path, line) for path in sys.argv[2:] for line in errors(json.load(open(path, encoding="utf-8")), SCHEMAS[sys.argv[1]], sys.argv[1])]
    print("\n".join(wrong[:9]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
