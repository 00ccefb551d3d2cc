// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/cmd/checked_module.h"

#include "common/base/text.h"
#include "common/objectstore/sigv4.h"
#include "trainer_function/model/script_trial.h"

namespace lambdadnn {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

}  // namespace

Status CheckedModule::Check(const std::string& archive, const TrainingConfig& config,
                            const DatasetInfo& dataset) {
  const ModelConfig& model = config.model;
  const std::string digest = kModuleDigestPrefix + Sha256Hex(archive);
  if (!model.module.digest.empty() && model.module.digest != digest) {
    return FailedPreconditionError(
        "the module " + model.torch_script_uri + " has changed since this job began (it was " +
        model.module.digest + " and is " + digest +
        "); put the file back and start a job with spec.checkpoint.resumeFrom, or start anew");
  }
  // Without a digest nobody can say that it was this one.
  if (model.module.tried && !model.module.digest.empty()) return OkStatus();
  const TrialNeeds needs = TrialNeeds::Of(config, dataset);
  const std::string tried = digest + " " + Join(TrialArguments(needs, {}), " ");
  const std::lock_guard lock(mutex_);
  if (passed_ == tried) return OkStatus();
  LDNN_RETURN_IF_ERROR(TryModule(kThisProgram, archive, needs));
  passed_ = tried;
  return OkStatus();
}

}  // namespace lambdadnn
