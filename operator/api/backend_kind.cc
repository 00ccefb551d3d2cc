// SPDX-License-Identifier: Apache-2.0
#include "operator/api/backend_kind.h"

#include <algorithm>
#include <array>

namespace lambdadnn {
namespace {

struct Backend {
  BackendKind kind;
  std::string name;
  BackendCapabilities capabilities;
};

// In the order of BackendKind.
const std::array<Backend, 3>& Backends() {
  static const std::array<Backend, 3> backends = {{
      {BackendKind::kLocal, "Local", {.changes_cpu = true, .gives_gpus = true}},
      {BackendKind::kKnative,
       "Knative",
       {.pods = true,
        .isolates_jobs = true,
        .quotas = true,
        .tls = true,
        .gives_gpus = true,
        .cluster_limits = true}},
      {BackendKind::kOpenFaas,
       "OpenFaaS",
       {.pods = true, .buffers_answers = true, .keeps_orphans = true, .cluster_limits = true}},
  }};
  return backends;
}

const Backend& BackendOf(BackendKind kind) { return Backends()[static_cast<size_t>(kind)]; }

}  // namespace

std::vector<BackendKind> BackendKinds() {
  std::vector<BackendKind> kinds;
  for (const Backend& backend : Backends()) kinds.push_back(backend.kind);
  return kinds;
}

const std::string& BackendName(BackendKind kind) { return BackendOf(kind).name; }

std::optional<BackendKind> FindBackend(std::string_view name) {
  const auto found = std::find_if(Backends().begin(), Backends().end(),
                                  [&](const Backend& backend) { return backend.name == name; });
  return found == Backends().end() ? std::nullopt : std::optional(found->kind);
}

const BackendCapabilities& CapabilitiesOf(BackendKind kind) { return BackendOf(kind).capabilities; }

}  // namespace lambdadnn
