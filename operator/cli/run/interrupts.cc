// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/interrupts.h"

namespace lambdadnn {
namespace {

// A signal handler can reach nothing else.
volatile sig_atomic_t interrupt_count = 0;

void CountInterrupt(int) { interrupt_count = interrupt_count + 1; }

}  // namespace

Interrupts::Interrupts() {
  interrupt_count = 0;
  struct sigaction action{};
  action.sa_handler = CountInterrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

int Interrupts::Count() const { return interrupt_count; }

}  // namespace lambdadnn
