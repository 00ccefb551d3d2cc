// SPDX-License-Identifier: Apache-2.0
// Texts, one sample a line, as fastText's supervised mode has them: "__label__NAME words of the
// text". Features are token ids, [maxTokens]: of the first so many tokens, filled up with <pad>.
// Labels are numbered by their names' order, or as numbers where all are whole numbers.
//
// A bad sample is one without a token, with one that the vocabulary lacks (and no <unk>), or, of
// ready ids, with what is none. With BadSamples::kSkip the next good one by number (after the last
// the first) takes its place, text and class, as in image_reader.h. A line without its label ends
// the opening: what cannot be counted cannot be numbered.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/protocol/training_config.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"
#include "trainer_function/data/vocabulary.h"

namespace lambdadnn {

struct TextOptions {
  TextConfig text = {};
  std::shared_ptr<const Vocabulary> vocabulary = {};  // null = lines have ready ids
  LabelClasses classes = {};
  std::vector<std::string> class_names =
      {};  // the training set's, for a test set; empty = those found
  BadSamples on_bad_sample = BadSamples::kFail;
  int64_t max_bad_samples = 0;
};

// One pass over the lines, for their labels, whose names the layout has. kInvalidArgument names
// file and line.
Result<std::unique_ptr<SampleReader>> OpenText(DataFile file, const TextOptions& options);

}  // namespace lambdadnn
