"""ttgcd completion: a script that lets the shell complete commands and options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)
    parser.epilog = (
        'bash, zsh: eval "$(ttgcd completion bash)" in ~/.bashrc or ~/.zshrc (with zsh in place of '
        "bash); fish: ttgcd completion fish > ~/.config/fish/completions/ttgcd.fish"
    )


def run(args: argparse.Namespace) -> int:
    from ttgcd.cli import full_parser

    parser = full_parser()
    print(_fish(parser) if args.shell == "fish" else _bash(parser, args.shell == "zsh"))
    return 0


def walk(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command with its words, parents first."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from walk(child, (*path, name))


def _words(parser: argparse.ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words += list(action.choices)
        words += [option for option in action.option_strings if option.startswith("--")]
    return words


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    for action in parser._actions:
        if action.choices and action.option_strings:
            for option in action.option_strings:
                yield option, [str(choice) for choice in action.choices]


def _bash(parser: argparse.ArgumentParser, zsh: bool) -> str:
    """The words behind each command, by the command's own words; files everywhere else."""
    commands, values = [], []
    for path, command in walk(parser):
        key = " ".join(path)
        commands.append(f'    "{key}") words="{" ".join(_words(command))}" ;;')
        for option, choices in _choices(command):
            values.append(f'    "{key} {option}") words="{" ".join(choices)}"; only=1 ;;')
    known = " ".join(f'"{" ".join(path)}"' for path, _ in walk(parser) if path)
    head = "autoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return (
        head
        + f"""_ttgcd() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local path="" word words="" only="" known
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    for known in {known}; do
      if [ "${{path:+$path }}$word" = "$known" ]; then path="$known"; break; fi
    done
  done
  case "$path" in
{chr(10).join(commands)}
  esac
  case "$path $before" in
{chr(10).join(values)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -z "$only" ]; then
    case "$current" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$current")) ;; esac
  fi
}}
complete -o filenames -F _ttgcd ttgcd"""
    )


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = []
    for path, command in walk(parser):
        when = "__fish_use_subcommand"
        if path:
            when = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        for action in command._actions:
            if isinstance(action, argparse._SubParsersAction):
                helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
                for name in action.choices:
                    about = _quoted(helps.get(name, ""))
                    lines.append(f"complete -c ttgcd -n '{when}' -f -a {name} -d {about}")
            for option in action.option_strings:
                if option.startswith("--"):
                    given = [str(choice) for choice in action.choices or ()]
                    value = f" -x -a {_quoted(' '.join(given))}" if given else ""
                    about = _quoted((action.help or "").split(" (default")[0].replace("%%", "%"))
                    name = option.removeprefix("--")
                    lines.append(f"complete -c ttgcd -n '{when}' -l {name}{value} -d {about}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
