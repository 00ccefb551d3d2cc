// SPDX-License-Identifier: Apache-2.0
// The order in which jobs get capacity, where namespaces share a platform. Pure.
//  * Between namespaces: dominant resource fairness by weight (Ghodsi et al., NSDI 2011). Next is
//    the namespace with the smallest dominant share: the larger one of its shares of memory and of
//    CPU, divided by its weight. What its jobs that come before would take counts as held. Of
//    equal shares (of 0, above all) the namespace comes first that started a job longest ago.
//  * Within a namespace: spec.priority, then age, then name.
//  * Backfilling (EASY; Lifka, JSSPP 1995): a job may start before another one that waits for more
//    than is free, if it ends before that one can start, or takes only what is spare then. When
//    that is follows from the predicted ends of the jobs that run; without these no job overtakes.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
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
// When the newest job of each namespace got its reservation, as far as is known.
using NamespaceStarts = std::map<std::string, WallTime>;

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
            const NamespaceWeights& weights, const NamespaceStarts& starts = {});
  // In the order in which they get capacity.
  const std::vector<Claim>& order() const { return order_; }
  // The turn of each, and after them that of a job which comes after all.
  const std::vector<QueueTurn>& turns() const { return turns_; }

 private:
  std::vector<Claim> order_;
  std::vector<QueueTurn> turns_;
};

}  // namespace lambdadnn
