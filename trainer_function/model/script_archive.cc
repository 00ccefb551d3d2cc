// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/script_archive.h"

#include <string>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kOldStructure = "model.json";

Status Refuse(std::string_view member, const std::string& why, const std::string& next) {
  return InvalidArgumentError(std::string(member) + " " + why + "; " + next);
}

bool EndsWithPart(std::string_view* text, std::string_view part) {
  if (!text->ends_with(part)) return false;
  text->remove_suffix(part.size());
  return true;
}

bool EndsWithSeparator(std::string_view* text) {
  return EndsWithPart(text, ".") || EndsWithPart(text, "\n");
}

// "__torch__.torch.classes.quantized.LinearParams". In a pickle a line ends somewhere within it.
bool NamesClassOfLibrary(std::string_view content) {
  constexpr std::string_view kClasses = "classes";
  for (size_t at = content.find(kClasses); at != std::string_view::npos;
       at = content.find(kClasses, at + 1)) {
    std::string_view before = content.substr(0, at);
    if (EndsWithSeparator(&before) && EndsWithPart(&before, "torch") &&
        EndsWithSeparator(&before) && before.ends_with("__torch__")) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool IsCodeOfModule(std::string_view member) {
  const std::string lower = LowerCase(member);
  return lower.ends_with(".py") || lower.ends_with(".pkl") || lower.ends_with(kOldStructure);
}

Status CheckCodeOfModule(std::string_view member, std::string_view content) {
  if (LowerCase(member).ends_with(kOldStructure)) {
    return Refuse(member, "is of a PyTorch before 1.2", "save the module with a newer one");
  }
  for (const std::string_view name : {"__setstate__", "__getstate__"}) {
    if (content.find(name) == std::string_view::npos) continue;
    return Refuse(member,
                  "has " + std::string(name) +
                      ", which would run when the module is read or written, before and after its "
                      "operators are checked",
                  "leave it out and keep what it sets in parameters, buffers or attributes");
  }
  if (NamesClassOfLibrary(content)) {
    return Refuse(member, "has an object of torch.classes, which is code of C++ and not trained",
                  "leave out quantized and other packed modules");
  }
  return OkStatus();
}

}  // namespace lambdadnn
