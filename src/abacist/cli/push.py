"""`abacist push`: a run and its model in a repository on the Hugging Face Hub."""

from abacist import extensions
from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.runs import hub


def run(arguments: list[str]) -> int:
    """Return exit code 0 if the repository holds the run."""
    parsed = make_parser().parse(arguments)
    hub.check_repository(parsed.name)
    hub.check_installed()

    from abacist.export import hub as export

    trained = named_run.load(parsed)
    repository = export.repository(trained)
    exported = repository.exportable
    address = export.push(repository, parsed.name, parsed.private)
    print(f"{address} holds {trained.path}.")
    print(f"Weights: {exported.weights_sha256}")
    print("It is certified." if exported.certificate else f"Not certified: {exported.objection}")
    if repository.obstacle:
        print(f"transformers cannot load it: {repository.obstacle}.")
    if exported.extensions:
        print(
            f"The code of {', '.join(exported.extensions)} does not travel: whoever loads the run "
            "needs it, and types it after --extension."
        )
    solve = extensions.command("solve", f"{hub.PREFIX}{parsed.name}", trained.task.example)
    print(f"Type {solve} to try it.")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "push",
        "Upload a run to the Hugging Face Hub: the folder of abacist export --to transformers, and the\n"
        "run itself with its newest checkpoint, scores and certificate, without the optimiser's state\n"
        "and what run.json says of the machine. Log in with hf auth login before.",
    )
    parser.add_run()
    parser.add_argument("name", metavar="USER/NAME", help="the repository, which may be new")
    parser.add_argument(
        "--private", action="store_true", help="make a new repository visible to you alone"
    )
    parser.set_defaults(checkpoint="last")
    parser.add_accept_changed_extension()
    return parser
