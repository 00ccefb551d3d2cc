// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/openfaas_edition.h"

#include <optional>
#include <vector>

#include "common/base/text.h"
#include "common/json/json_path.h"

namespace lambdadnn {
namespace {

constexpr const char* kCommunity = "faas-netes-ce";
// The community edition counts functions since its release after 0.16; it allowed 30, then 15.
constexpr long long kLastUncountedMinor = 16;
constexpr int kCommunityFunctions = 15;
constexpr size_t kMaxAnswerBytes = 64 * 1024;
// Those of the commercial editions are in another organisation's registry.
constexpr std::string_view kCommunityImage = "openfaas/faas-netes:";

bool CountsFunctions(const OpenFaasEdition& edition) {
  if (edition.provider != kCommunity) return false;
  const std::vector<std::string> numbers = Split(edition.release, '.');
  if (numbers.size() < 2) return false;
  const auto major = ParseInteger(numbers[0]);
  const auto minor = ParseInteger(numbers[1]);
  return major && minor && (*major > 0 || *minor > kLastUncountedMinor);
}

}  // namespace

std::string OpenFaasEdition::Text() const {
  const std::string name = provider == kCommunity ? "OpenFaaS Community Edition" : "OpenFaaS";
  return name + " (" + provider + (release.empty() ? "" : " " + release) + ")";
}

std::optional<OpenFaasEdition> EditionOf(const Json& deployment) {
  const Json* containers = FindPath(deployment, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return std::nullopt;
  for (const Json& container : *containers) {
    const std::string image = TextAt(container, {"image"});
    const size_t begin = image.find(kCommunityImage);
    if (begin == std::string::npos || (begin > 0 && image[begin - 1] != '/')) continue;
    OpenFaasEdition edition{.provider = kCommunity,
                            .release = image.substr(begin + kCommunityImage.size())};
    if (CountsFunctions(edition)) edition.max_functions = kCommunityFunctions;
    return edition;
  }
  return std::nullopt;
}

Result<OpenFaasEdition> ReadOpenFaasInfo(const std::string& answer) {
  const Result<Json> json = ParseJson(answer, {.bytes = kMaxAnswerBytes});
  const Json* provider = json.ok() ? FindPath(*json, {"provider"}) : nullptr;
  OpenFaasEdition edition;
  if (provider != nullptr && provider->is_object()) {
    edition.provider = TextAt(*provider, {"provider"});
    if (edition.provider.empty()) edition.provider = TextAt(*provider, {"name"});
    edition.release = TextAt(*provider, {"version", "release"});
    edition.orchestration = TextAt(*provider, {"orchestration"});
  }
  if (edition.provider.empty()) {
    return FailedPreconditionError("what answers there is no gateway of OpenFaaS with a provider");
  }
  if (CountsFunctions(edition)) edition.max_functions = kCommunityFunctions;
  return edition;
}

}  // namespace lambdadnn
