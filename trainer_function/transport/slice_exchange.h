// SPDX-License-Identifier: Apache-2.0
// How one training function of a slice exchanges objects with the others: by its plan's transport,
// and by what it can reach.
//
//   ObjectStore   through the store; who is connected rings
//   Direct        over connections, and through the store where there is none
#pragma once

#include <optional>

#include "common/objectstore/object_store.h"
#include "trainer_function/transport/direct_transport.h"
#include "trainer_function/transport/doorbells.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {

class SliceExchange {
 public:
  // For a slice of a worker or a server. All outlive this.
  SliceExchange(Runtime& runtime, const PeerAccess& access, const SliceRequest& request,
                ObjectStore& store, Interrupt& interrupt);

  Transport& transport();
  // Null where this function reaches no others.
  const SlicePeers* peers() const;
  // Nobody need keep anything for this function any more, nor miss it: it has all that it reads,
  // and no other will take its place.
  void SayDone();
  // The slice's roles have ended well: waits until the others have what they still need of it.
  Status Finish() { return direct_.has_value() ? direct_->Finish() : OkStatus(); }

 private:
  std::optional<Doorbells> bells_;
  std::optional<StoreTransport> store_;
  std::optional<DirectTransport> direct_;
};

}  // namespace lambdadnn
