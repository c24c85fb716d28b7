"""Generates the C tables of the schema: apigen --out DIR FILE.api..."""

import argparse
import os
import sys

from emit import Emitter
from language import ApiError, read_files
from model import resolve


def c_name_of_source(path):
    return "api_" + os.path.splitext(os.path.basename(path))[0] + ".c"


def main():
    parser = argparse.ArgumentParser(prog="apigen", description=__doc__)
    parser.add_argument("--out", required=True, help="directory for the generated files")
    parser.add_argument("files", nargs="+", help=".api files")
    args = parser.parse_args()
    try:
        Emitter(resolve(read_files(args.files)), args.out).run(c_name_of_source)
    except (ApiError, OSError) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
