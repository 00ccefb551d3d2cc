// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a counter: the first asks for a clean stop, the second for an end at once.
// At most one object per process; the destructor restores the former handlers.
#pragma once

#include <signal.h>

namespace lambdadnn {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int Count() const;

 private:
  struct sigaction old_int_{};
  struct sigaction old_term_{};
};

}  // namespace lambdadnn
