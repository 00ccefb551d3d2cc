// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/usage_error.h"

#include <algorithm>
#include <vector>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

std::string Guess(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = NearestWord(word, known);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : "";
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string DescribeUsageError(const CLI::App& app, const CLI::ParseError& error,
                               std::span<const std::string> words) {
  const std::string& program = app.get_name();
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const bool is_flag = word.size() > 1 && word.front() == '-';
    if (command == &app && !is_flag) {
      const std::vector<std::string> names = CommandNames(app);
      if (!Has(names, word)) {
        return "unknown command \"" + word + "\"" + Guess(word, names) + "; see " + program +
               " --help";
      }
      command = app.get_subcommand(word);
      continue;
    }
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(0, word.find('='));
    const std::vector<std::string> names = FlagNames(*command);
    if (!Has(names, name)) {
      const std::string where = command == &app ? program : program + " " + command->get_name();
      return "unknown flag \"" + name + "\" of " + where + Guess(name, names) + "; see " + where +
             " --help";
    }
  }
  const std::string where = command == &app ? program : program + " " + command->get_name();
  if (command == &app) return "no command is given; see " + where + " --help";
  return std::string(error.what()) + "; see " + where + " --help";
}

}  // namespace lambdadnn
