// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/host_protocol.h"

#include <array>

#include "common/base/endpoint.h"
#include "common/json/dump_json.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

constexpr std::array<std::pair<FunctionPhase, const char*>, 4> kPhases = {{
    {FunctionPhase::kPending, "Pending"},
    {FunctionPhase::kReady, "Ready"},
    {FunctionPhase::kTerminating, "Terminating"},
    {FunctionPhase::kGone, "Gone"},
}};

constexpr std::array<std::pair<FunctionEnd, const char*>, 4> kEnds = {{
    {FunctionEnd::kNone, "None"},
    {FunctionEnd::kByPlatform, "ByPlatform"},
    {FunctionEnd::kByItself, "ByItself"},
    {FunctionEnd::kOutOfMemory, "OutOfMemory"},
}};

constexpr std::array<std::pair<FunctionProgram, const char*>, 2> kPrograms = {{
    {FunctionProgram::kWorker, "worker"},
    {FunctionProgram::kServer, "server"},
}};

// Reasons and log lines may hold any bytes.
std::string Dump(const Json& json) { return DumpJson(json) + "\n"; }

template <typename Names, typename Value>
bool DecodeName(const Names& names, const std::string& name, Value* value) {
  for (const auto& [known, text] : names) {
    if (name != text) continue;
    *value = known;
    return true;
  }
  return false;
}

}  // namespace

std::string EncodeFunctionSpec(const HostedFunctionSpec& spec) {
  const FunctionGroup& group = spec.group;
  Json json = {{"uid", spec.uid},
               {"jobUid", group.job_uid},
               {"namespace", group.namespace_name},
               {"jobName", group.job_name},
               {"group", group.name},
               {"program", std::string(ProgramName(group.program))},
               {"memoryMib", group.memory_mib},
               {"milliCpu", group.milli_cpu},
               {"timeoutSeconds", group.timeout_seconds},
               {"environment", group.environment}};
  if (group.gpu > 0) json["gpu"] = group.gpu;
  return Dump(json);
}

Result<HostedFunctionSpec> DecodeFunctionSpec(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  HostedFunctionSpec spec;
  std::vector<FieldError> errors;
  JsonReader reader(json, "function", &errors);
  reader.Required("uid", &spec.uid);
  reader.Required("jobUid", &spec.group.job_uid);
  reader.Optional("namespace", &spec.group.namespace_name);
  reader.Optional("jobName", &spec.group.job_name);
  reader.Required("group", &spec.group.name);
  std::string program;
  if (reader.Required("program", &program) &&
      !DecodeName(kPrograms, program, &spec.group.program)) {
    reader.Report("program", "must be worker or server");
  }
  reader.Optional("memoryMib", &spec.group.memory_mib);
  reader.Optional("milliCpu", &spec.group.milli_cpu);
  reader.Optional("gpu", &spec.group.gpu);
  reader.Optional("timeoutSeconds", &spec.group.timeout_seconds);
  if (const Json* environment = reader.Child("environment")) {
    if (!environment->is_object()) {
      reader.Report("environment", "must be an object of strings");
    } else {
      for (const auto& [name, value] : environment->items()) {
        const bool valid_name = !name.empty() && name.find('=') == std::string::npos &&
                                name.find('\0') == std::string::npos;
        if (!valid_name || !value.is_string() ||
            value.get_ref<const std::string&>().find('\0') != std::string::npos) {
          reader.Report("environment", "must be an object of strings without '=' in a name");
          break;
        }
        spec.group.environment[name] = value.get<std::string>();
      }
    }
  }
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return spec;
}

std::string EncodeFunctions(const std::vector<FunctionInstance>& functions) {
  Json list = Json::array();
  for (const FunctionInstance& function : functions) {
    const char* phase = kPhases[static_cast<size_t>(function.phase)].second;
    list.push_back({{"uid", function.uid},
                    {"group", function.group},
                    {"phase", phase},
                    {"address", function.endpoint.Text()},
                    {"peerAddress", function.peer_address},
                    {"coldStartSeconds", function.cold_start_seconds},
                    {"ageSeconds", function.age_seconds},
                    {"endedSeconds", function.ended_seconds},
                    {"restarts", function.restarts},
                    {"reason", function.reason},
                    {"end", kEnds[static_cast<size_t>(function.end)].second},
                    {"lastLogLine", function.last_log_line}});
  }
  return Dump({{"functions", std::move(list)}});
}

Result<std::vector<FunctionInstance>> DecodeFunctions(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  std::vector<FunctionInstance> functions;
  const Json* list = reader.Child("functions");
  if (list == nullptr || !list->is_array()) {
    return InvalidArgumentError("functions: must be a list");
  }
  for (const Json& item : *list) {
    FunctionInstance function;
    std::string phase;
    JsonReader fields(item, "functions[" + std::to_string(functions.size()) + "]", &errors);
    fields.Required("uid", &function.uid);
    fields.Required("group", &function.group);
    if (fields.Required("phase", &phase) && !DecodeName(kPhases, phase, &function.phase)) {
      fields.Report("phase", "must be Pending, Ready, Terminating or Gone");
    }
    std::string address;
    if (fields.Optional("address", &address) && !address.empty()) {
      const Result<Endpoint> endpoint = ParseEndpoint(address);
      if (endpoint.ok()) {
        function.endpoint = *endpoint;
      } else {
        fields.Report("address", endpoint.status().message());
      }
    }
    fields.Optional("peerAddress", &function.peer_address);
    fields.Optional("coldStartSeconds", &function.cold_start_seconds);
    fields.Optional("ageSeconds", &function.age_seconds);
    fields.Optional("endedSeconds", &function.ended_seconds);
    fields.Optional("restarts", &function.restarts);
    fields.Optional("reason", &function.reason);
    std::string end = "None";
    fields.Optional("end", &end);
    if (!DecodeName(kEnds, end, &function.end)) {
      fields.Report("end", "must be None, ByPlatform, ByItself or OutOfMemory");
    }
    fields.Optional("lastLogLine", &function.last_log_line);
    functions.push_back(std::move(function));
  }
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return functions;
}

std::string EncodeHostInfo(const HostInfo& info) {
  return Dump({{"pid", info.pid},
               {"isolation", info.isolation},
               {"isolationReason", info.isolation_reason},
               {"directory", info.directory},
               {"memoryMib", info.memory_mib},
               {"gpus", info.gpus}});
}

Result<HostInfo> DecodeHostInfo(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  HostInfo info;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  reader.Required("pid", &info.pid);
  reader.Required("isolation", &info.isolation);
  reader.Optional("isolationReason", &info.isolation_reason);
  reader.Optional("directory", &info.directory);
  reader.Optional("memoryMib", &info.memory_mib);
  reader.Optional("gpus", &info.gpus);
  // A host may be newer than the operator: unknown fields are ignored.
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return info;
}

}  // namespace lambdadnn
