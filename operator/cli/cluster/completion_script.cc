// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/completion_script.h"

#include <vector>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

struct FlagWords {
  std::string long_name;  // without dashes
  std::string short_name;
  std::string help;
  bool takes_value = false;
};

struct CommandWords {
  std::string name;
  std::string help;  // its first line
  std::vector<FlagWords> flags;
  bool takes_jobs = false;
};

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// In single quotes no shell reads anything but the quote itself.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<CommandWords> WordsOf(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    CommandWords words = {command->get_name(), FirstLine(command->get_description()), {}, false};
    for (const CLI::Option* option : command->get_options()) {
      // The commands about jobs of a cluster call theirs so.
      if (option->get_positional() && option->get_name() == "name") words.takes_jobs = true;
      for (const std::string& name : option->get_lnames()) {
        const auto& shorts = option->get_snames();
        words.flags.push_back({name, shorts.empty() ? "" : shorts.front(),
                               FirstLine(option->get_description()), option->get_type_size() > 0});
      }
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

std::string Names(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const CommandWords& command : commands) {
    text += (text.empty() ? "" : " ") + command.name;
  }
  return text;
}

std::string Flags(const CommandWords& command) {
  std::string text;
  for (const FlagWords& flag : command.flags) {
    text += (text.empty() ? "--" : " --") + flag.long_name;
  }
  return text;
}

std::string JobCommands(const std::vector<CommandWords>& commands, const char* separator) {
  std::string text;
  for (const CommandWords& command : commands) {
    if (command.takes_jobs) text += (text.empty() ? "" : separator) + command.name;
  }
  return text;
}

std::string Bash(const std::vector<CommandWords>& commands, const std::string& program) {
  std::string text = "# bash completion of " + program + ": source <(" + program +
                     " completion bash)\n"
                     "_lambdadnn() {\n"
                     "  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} flags=\n"
                     "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "    COMPREPLY=($(compgen -W \"" +
                     Names(commands) +
                     "\" -- \"$current\"))\n"
                     "    return\n"
                     "  fi\n"
                     "  case $command in\n";
  for (const CommandWords& command : commands) {
    text += "    " + command.name + ") flags=\"" + Flags(command) + "\" ;;\n";
  }
  return text +
         "  esac\n"
         "  case $current in -*)\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
         "    return ;;\n"
         "  esac\n"
         "  case $command in\n"
         "    " +
         JobCommands(commands, "|") +
         ")\n"
         "      COMPREPLY=($(compgen -W \"$(" +
         program +
         " status -o name 2>/dev/null | cut -d/ -f2)\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _lambdadnn " +
         program + "\n";
}

std::string Zsh(const std::vector<CommandWords>& commands, const std::string& program) {
  std::string text = "#compdef " + program + "\n# zsh completion: source <(" + program +
                     " completion zsh)\n"
                     "_lambdadnn() {\n"
                     "  local -a commands flags\n"
                     "  commands=(\n";
  const auto entry = [](const std::string& name, const std::string& help) {
    return Quoted(name + ":" + help);
  };
  for (const CommandWords& command : commands) {
    text += "    " + entry(command.name, command.help) + "\n";
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const CommandWords& command : commands) {
    text += "    " + command.name + ") flags=(";
    for (const FlagWords& flag : command.flags) {
      text += " " + entry("--" + flag.long_name, flag.help);
    }
    text += " ) ;;\n";
  }
  return text +
         "  esac\n"
         "  case $words[2]:$words[CURRENT] in\n"
         "    *:-*) _describe flag flags ;;\n"
         "    (" +
         JobCommands(commands, "|") + "):*) compadd -- ${(f)\"$(" + program +
         " status -o name 2>/dev/null | cut -d/ -f2)\"} ;;\n"
         "    *) _files ;;\n"
         "  esac\n"
         "}\n"
         "compdef _lambdadnn " +
         program + "\n";
}

std::string Fish(const std::vector<CommandWords>& commands, const std::string& program) {
  const std::string begin = "complete -c " + program;
  std::string text = "# fish completion: " + program + " completion fish | source\n" + begin +
                     " -f -n __fish_use_subcommand\n";
  for (const CommandWords& command : commands) {
    text += begin + " -f -n __fish_use_subcommand -a " + command.name + " -d " +
            Quoted(command.help) + "\n";
    for (const FlagWords& flag : command.flags) {
      text += begin + " -n " + Quoted("__fish_seen_subcommand_from " + command.name) + " -l " +
              flag.long_name + (flag.short_name.empty() ? "" : " -s " + flag.short_name) +
              (flag.takes_value ? " -r" : "") + " -d " + Quoted(flag.help) + "\n";
    }
  }
  return text + begin + " -f -n " +
         Quoted("__fish_seen_subcommand_from " + JobCommands(commands, " ")) + " -a " +
         Quoted("(" + program + " status -o name 2>/dev/null | cut -d/ -f2)") + "\n";
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell,
                             const std::string& program) {
  const std::vector<CommandWords> commands = WordsOf(app);
  if (shell == "zsh") return Zsh(commands, program);
  return shell == "fish" ? Fish(commands, program) : Bash(commands, program);
}

}  // namespace lambdadnn
