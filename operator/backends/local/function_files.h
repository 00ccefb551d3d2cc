// SPDX-License-Identifier: Apache-2.0
// Reads a function process from outside: its log, its memory, whether its port answers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace lambdadnn {

// The last `lines` lines of a file (at most 1 MiB of them). kNotFound when it is not there.
Result<std::string> ReadLastLines(const std::string& path, int lines);
// The last line that is not empty; "" when there is none.
std::string LastLine(const std::string& path);

// Of another process; 0 when it has gone.
int64_t ResidentBytesOf(pid_t pid);

// Whether http://127.0.0.1:PORT/readyz answers 200 within 100 ms.
bool AnswersReady(int port);

}  // namespace lambdadnn
