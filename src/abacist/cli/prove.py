"""`abacist prove`: certify that a model is right on problems of every length."""

import json

from abacist.cli.arguments import Parser


def run(arguments: list[str]) -> int:
    """Exit code 0 when certified, 1 when not."""
    parser = Parser(
        "prove",
        "Check every neighbourhood a trained model can meet: a certificate for problems of\n"
        "every length, or a problem that the model gets wrong.",
    )
    parser.add_run()
    parser.add_json()
    parsed = parser.parse(arguments)

    from abacist.cli import show
    from abacist.runs.run import load

    certificate = load(parsed.run).prove()
    if parsed.json:
        print(json.dumps(certificate.to_json()))
    else:
        show.console().print(show.certificate(certificate), soft_wrap=True)
    return 0 if certificate.certified else 1
