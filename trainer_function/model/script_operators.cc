// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/script_operators.h"

#include <torch/csrc/jit/passes/inliner.h>
#include <torch/script.h>

#include <string>
#include <string_view>

namespace lambdadnn {
namespace {

struct Refused {
  std::string_view name;
  std::string_view why;
};

constexpr std::string_view kFiles = "reads or writes files";
constexpr std::string_view kSeed = "sets the seed, which follows from spec.training.seed";
constexpr std::string_view kBeside = "runs beside other operators, in no fixed order";
constexpr std::string_view kOthers = "talks to other processes";
constexpr Refused kRefused[] = {
    {"aten::from_file", kFiles},   {"aten::save", kFiles},
    {"prim::Print", "prints"},     {"aten::warn", "prints"},
    {"aten::manual_seed", kSeed},  {"prim::fork", kBeside},
    {"prim::awaitable", kBeside},  {"aten::wait", kBeside},
    {"prim::rpc_async", kOthers},  {"prim::rpc_sync", kOthers},
    {"prim::rpc_remote", kOthers}, {"prim::PythonOp", "is code of Python"},
};
// What LibTorch computes, and the language's own.
constexpr std::string_view kAllowedLibraries[] = {"aten", "prim"};

std::string_view WhyRefused(std::string_view name) {
  for (const Refused& refused : kRefused) {
    if (refused.name == name) return refused.why;
  }
  const std::string_view library = name.substr(0, name.find("::"));
  for (const std::string_view allowed : kAllowedLibraries) {
    if (library == allowed) return "";
  }
  return "is of a library that functions do not load";
}

// An object of C++ that a library brings (torch.classes): its methods are no operators, and may do
// anything.
bool IsOfLibrary(const c10::Type& type) {
  const auto named = dynamic_cast<const c10::ClassType*>(&type);
  constexpr std::string_view kClasses = "__torch__.torch.classes.";
  return named != nullptr && named->name().has_value() &&
         named->name()->qualifiedName().starts_with(kClasses);
}

// `*calls`: whether what is called was left open, as of a module interface.
Status CheckBlock(const torch::jit::Block& block, bool* calls) {
  for (const torch::jit::Node* node : block.nodes()) {
    const std::string name = node->kind().toQualString();
    *calls = *calls || name == "prim::CallMethod" || name == "prim::CallFunction";
    if (const std::string_view why = WhyRefused(name); !why.empty()) {
      return InvalidArgumentError("spec.model.torchScript: forward calls " + name + ", which " +
                                  std::string(why) + "; leave it out of the module");
    }
    for (const torch::jit::Value* output : node->outputs()) {
      if (!IsOfLibrary(*output->type())) continue;
      return InvalidArgumentError("spec.model.torchScript: forward uses " +
                                  output->type()->repr_str() +
                                  ", an object of C++; leave it out of the module");
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      LDNN_RETURN_IF_ERROR(CheckBlock(*inner, calls));
    }
  }
  return OkStatus();
}

Status CheckMethod(const torch::jit::Method& method, bool* calls) {
  const auto graph = method.graph()->copy();
  torch::jit::Inline(*graph);
  return CheckBlock(*graph->block(), calls);
}

}  // namespace

Status CheckOperators(const torch::jit::Module& module) {
  bool calls = false;
  LDNN_RETURN_IF_ERROR(CheckMethod(module.get_method("forward"), &calls));
  if (!calls) return OkStatus();
  // Any method may be what is called.
  for (const torch::jit::Module& each : module.modules()) {
    for (const torch::jit::Method& method : each.get_methods()) {
      LDNN_RETURN_IF_ERROR(CheckMethod(method, &calls));
    }
  }
  return OkStatus();
}

}  // namespace lambdadnn
