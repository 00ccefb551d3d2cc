// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/slice_exchange.h"

#include "common/protocol/exchange_peers.h"

namespace lambdadnn {
namespace {

// A role that the plan does not have meets nobody, and is refused when it begins.
bool Reaches(const PeerAccess& access, const SliceRequest& request, TransportKind transport) {
  return access.network != nullptr && request.plan.aggregation.transport == transport &&
         IsRoleOf(request.plan.aggregation, ExchangeRoleOf(request.role()));
}

}  // namespace

SliceExchange::SliceExchange(Runtime& runtime, const PeerAccess& access,
                             const SliceRequest& request, ObjectStore& store,
                             Interrupt& interrupt) {
  if (Reaches(access, request, TransportKind::kObjectStore)) {
    bells_.emplace(runtime, access, request);
  }
  store_.emplace(runtime, store, interrupt, ScopeOf(request), request.job.uid,
                 request.plan.block_elements, bells_.has_value() ? &*bells_ : nullptr);
  if (Reaches(access, request, TransportKind::kDirect)) {
    direct_.emplace(runtime, access, request, interrupt, *store_);
  }
}

Transport& SliceExchange::transport() {
  if (direct_.has_value()) return *direct_;
  return *store_;
}

void SliceExchange::SayDone() {
  if (direct_.has_value()) direct_->SayDone();
  if (bells_.has_value()) bells_->SayDone();
}

const SlicePeers* SliceExchange::peers() const {
  if (direct_.has_value()) return &direct_->peers();
  return bells_.has_value() ? &bells_->peers() : nullptr;
}

}  // namespace lambdadnn
