// SPDX-License-Identifier: Apache-2.0
// What a gateway of OpenFaaS says about itself (GET /system/info), and the limits of its edition
// that follow. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

struct OpenFaasEdition {
  std::string provider = "";  // "faas-netes-ce"
  std::string release = "";   // of the provider: "0.18.17"; "dev" of one that was built by hand
  std::string orchestration = "";  // "kubernetes"
  // On the whole gateway; 0 = no limit is known.
  int max_functions = 0;
  // "OpenFaaS Community Edition (faas-netes-ce 0.18.17)", for people.
  std::string Text() const;
};

// By the image of the provider in a Deployment of OpenFaaS' own namespace, for those who may not
// ask the gateway; nullopt = it is none that is known.
std::optional<OpenFaasEdition> EditionOf(const Json& deployment);

// kFailedPrecondition: whoever answered so is no gateway of OpenFaaS.
Result<OpenFaasEdition> ReadOpenFaasInfo(const std::string& answer);

}  // namespace lambdadnn
