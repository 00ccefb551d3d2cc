// SPDX-License-Identifier: Apache-2.0
// A group of identical function instances, as the controller requests it from a backend. A plain
// value.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/protocol/slice.h"
#include "operator/api/pod_template.h"

namespace lambdadnn {

// What a function runs: lambdadnn-worker or lambdadnn-server.
enum class FunctionProgram { kWorker, kServer };
constexpr const char* ProgramName(FunctionProgram program) {
  return program == FunctionProgram::kWorker ? "worker" : "server";
}

// Wanted: `count` instances of one size and program. The name is unique within the job ("workers",
// "servers", "profile") and may carry the plan revision ("workers-r2").
struct FunctionGroup {
  std::string job_uid;
  std::string namespace_name;
  std::string job_name;
  std::string name;
  FunctionProgram program = FunctionProgram::kWorker;
  int count = 0;
  int memory_mib = 0;
  int milli_cpu = 0;  // 0 = no CPU limit
  int gpu = 0;        // GPUs of each instance
  double timeout_seconds = 0;
  // Of a group that a backend makes one by one: which of them this is.
  std::optional<int> member = std::nullopt;
  std::map<std::string, std::string> environment;
  // For backends that have pods.
  Addressing addressing = Addressing::kPod;
  PodTemplate pods = {};
  friend bool operator==(const FunctionGroup&, const FunctionGroup&) = default;
};

inline JobIdentity JobOf(const FunctionGroup& group) {
  return {group.job_uid, group.namespace_name, group.job_name};
}

}  // namespace lambdadnn
