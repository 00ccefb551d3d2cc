// SPDX-License-Identifier: Apache-2.0
// The first process of every pod of the test cluster: it holds the pod's namespaces, takes in
// processes whose parents have ended, and ends when told.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
  sigset_t wanted;
  int received = 0;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGCHLD);
  sigprocmask(SIG_BLOCK, &wanted, NULL);
  while (sigwait(&wanted, &received) == 0 && received == SIGCHLD) {
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
  return 0;
}
