// SPDX-License-Identifier: Apache-2.0
// What is known of a user's module before a function starts: whether it is there, whether reading
// it would run code of it, its digest, and, where there is a LibTorch beside the operator, whether
// it can be trained on the data set.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/script_trial.h"

namespace lambdadnn {

// TryModule with a program.
using ModuleTrial = std::function<Status(std::string_view archive, const TrialNeeds& needs)>;

// Of training.model.torch_script_uri, which is not empty. With a null `trial`, or where the data
// set cannot be read from here, nothing is tried, and the archive is read in blocks of 4 MiB; else
// it is held in memory. kInvalidArgument and kNotFound are what is wrong with the file, as a
// sentence with what to do; other codes are those of the store, and say nothing of the file.
Result<ModuleFacts> CheckModule(const TrainingConfig& training, const OpenStoreAt& open_store,
                                const ModuleTrial& trial);

}  // namespace lambdadnn
