// SPDX-License-Identifier: Apache-2.0
// Samples of an ImageSource: decoded, scaled and cropped when they are loaded, and held as bytes,
// [channels, height, width].
//
// A bad sample is one whose image is damaged, is none, or claims more than is read. With
// BadSamples::kSkip the next good one by number (after the last the first) takes its place, image
// and class: which samples a job trains on is a function of the files alone, whoever reads them.
#pragma once

#include <memory>

#include "common/protocol/training_config.h"
#include "trainer_function/data/image_source.h"

namespace lambdadnn {

// Reads the first image, whose size is that of all where config.image gives none. kInvalidArgument
// naming the image for a bad one.
Result<std::unique_ptr<SampleReader>> MakeImageReader(std::unique_ptr<ImageSource> source,
                                                      const DatasetConfig& config);

}  // namespace lambdadnn
