// SPDX-License-Identifier: Apache-2.0
// What the files inside a TorchScript archive say before LibTorch reads it, for reading it runs
// code of it (`__setstate__`). Without LibTorch: functions look with LibTorch's own reader of
// archives (torch_script_model.cc), the operator with ours (trainer_function/data/module_check.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace lambdadnn {

// Larger than what trains in a function, small enough to be held beside it.
inline constexpr uint64_t kMaxModuleBytes = uint64_t{1} << 30;
// Of the files with code and structure, once inflated: those of a network of 2,000 layers have 2.
inline constexpr uint64_t kMaxModuleCodeBytes = uint64_t{64} << 20;

// How an archive begins that holds what the members say: LibTorch reads other kinds of files, too.
inline constexpr std::string_view kArchiveBegin = "PK\x03\x04";

// Whether the member of this name has code or structure, and so has to be looked at; others have
// tensors. LibTorch finds members without regard to case.
bool IsCodeOfModule(std::string_view member);

// kInvalidArgument naming the member, and what to do, when reading or writing the module would run
// code (`__setstate__`, `__getstate__`), make objects of C++ (torch.classes), or when it is of a
// kind from before PyTorch 1.2, whose code may have any name.
Status CheckCodeOfModule(std::string_view member, std::string_view content);

}  // namespace lambdadnn
