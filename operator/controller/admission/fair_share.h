// SPDX-License-Identifier: Apache-2.0
// In which order jobs get capacity, where namespaces share a platform. Pure.
//  * Between namespaces: dominant resource fairness by weight (Ghodsi et al., NSDI 2011). Next is
//  the
//    namespace with the smallest dominant share, which is the larger one of its shares of memory
//    and of CPU, divided by its weight. What its jobs that come before would take counts as held.
//  * Within a namespace: spec.priority, then age, then name.
//  * Backfilling (EASY; Lifka, JSSPP 1995): a job may start before another one that waits for more
//  than
//    is free, if it will have ended when that one can start, or takes only what is left over then.
//    When that is follows from the predicted ends of the jobs that run; without these nobody is
//    overtaken.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/admission/reservation.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {

// A job that waits.
struct Claim {
  ObjectName name;
  int64_t priority = 0;
  std::string created;  // RFC 3339
  Reservation reservation;
  std::optional<double> seconds;  // that it will run, as far as is known
};
// A job that has its reservation.
struct Holding {
  std::string namespace_name;
  Reservation reservation;
  std::optional<double> seconds_left;  // as far as is known
};
// By namespace; one that is not in it has the weight 1.
using NamespaceWeights = std::map<std::string, double>;

// The place of one job among those that wait.
struct QueueTurn {
  size_t ahead = 0;    // jobs before it
  Reservation before;  // what they wait for
  Reservation taken;   // now, with those of them that may start
  // One of them has to wait. Then, if it is known: in how many seconds it can start, and what may
  // be taken until after that without being in its way.
  bool overtakes = false;
  std::optional<double> first_starts_in;
  Reservation spare;
};
// Whether a job at this place that needs `reservation` for `seconds` may start now.
bool MayStart(const QueueTurn& turn, const Reservation& reservation, std::optional<double> seconds,
              const Reservation& capacity);

class FairQueue {
 public:
  // `capacity`: of all jobs together; 0 = no limit. Claims beyond it must not be among them.
  FairQueue(std::vector<Claim> claims, std::vector<Holding> holdings, const Reservation& capacity,
            NamespaceWeights weights);
  // In the order in which they get capacity, with the turn of each.
  const std::vector<Claim>& order() const { return order_; }
  const std::vector<QueueTurn>& turns() const { return turns_; }
  // Of a job that is not among them, whatever it needs.
  QueueTurn TurnOf(const Claim& another) const;

 private:
  std::vector<Claim> Ordered(std::vector<Claim> claims, const Claim* until) const;
  std::vector<QueueTurn> Walk(const std::vector<Claim>& order) const;

  const std::vector<Holding> holdings_;
  const Reservation capacity_;
  const NamespaceWeights weights_;
  std::vector<Claim> order_;
  std::vector<QueueTurn> turns_;
};

}  // namespace lambdadnn
