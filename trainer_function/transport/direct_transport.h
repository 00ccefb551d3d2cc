// SPDX-License-Identifier: Apache-2.0
// The transport of a function whose objects travel over its connections to those that read them
// (docs/design/028-direct-transport.md). A push keeps the object here until it is discarded; a
// reader asks its writer by name, and is answered as soon as the object is there. So what is on its
// way to a reader is what it has asked for, and its memory that of its pulls.
//
// While two functions are not connected, what one writes for the other goes through the store:
// whatever the writer holds is put there, once, and the reader polls. Nobody decides that for both
// sides: a reader that is connected asks its writer, and one that is not asks the store, which has
// the object when the writer knows that too, within kSilenceSeconds.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "common/base/runtime.h"
#include "trainer_function/transport/exchange_codec.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/slice_peers.h"
#include "trainer_function/transport/store_transport.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Objects that are asked for before they are there; readers have no more pulls at once.
inline constexpr size_t kMostAsked = 4096;

class DirectTransport final : public Transport, private PeerListener {
 public:
  // As SlicePeers; all outlive this. `store` is of the same slice.
  DirectTransport(Runtime& runtime, const PeerAccess& access, const SliceRequest& request,
                  Interrupt& interrupt, StoreTransport& store);
  ~DirectTransport() override;

  // Returns once the object is held here, and in the store where a reader is not connected.
  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              const SharedView& payload) override;
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override;
  Status Discard(std::span<const ExchangeObjectName> names) override;
  bool HoldsInMemory() const override { return true; }
  // In the memory of connected functions, and in the store. From then on no connected function
  // takes anything of another one in this role.
  Result<std::set<WeightsShard>> FindWeights() override;
  // As SliceExchange's.
  void SayDone();
  Status Finish();

  const SlicePeers& peers() const { return *peers_; }

 private:
  enum class Stored { kNo, kToBe, kYes };
  struct Held {
    SharedFrame frame;
    std::vector<PeerId> readers;  // in other functions
    Stored stored = Stored::kNo;
  };
  struct Awaited {
    int pulls = 0;
    std::optional<PeerObject> object;                     // that has come
    std::unique_ptr<MonitorCondition> changed = nullptr;  // for its pulls
  };
  class Change;
  class WaitingPull;

  void OnDoorbell(const PeerId&, const ExchangeObjectName&) override {}
  Status OnPull(const PeerId& from, const ExchangeObjectName& name) override;
  Status OnObject(const PeerId& from, PeerObject object) override;
  Status OnFind(const PeerId& from) override;
  Status OnFound(const PeerId& from, const std::vector<ExchangeObjectName>& names) override;
  void OnDone(const PeerId& peer) override;
  void OnConnected(const PeerId& peer) override;
  void OnLost(const PeerId& peer) override;

  // With the monitor:
  // Whether it reads from the store: it is not connected, and may want something yet.
  bool ReadsFromStore(const PeerId& peer) const;
  // Has all that is held for this peer stored.
  void Store(const PeerId& peer);
  void Ask(const ExchangeObjectName& name);
  // Whatever they wait for, they look again.
  void WakeAll();
  // For a change; an error when the slice ends first.
  Status WaitALittle(const char* what);
  bool AllIsFetched() const;

  // On a task of its own: stores what is held for those whose connections have ended.
  void RunStoring();
  // Nothing = that task ends.
  struct ToStore {
    ExchangeObjectName name;
    SharedFrame frame;
  };
  std::optional<ToStore> NextToStore();
  Status PutIntoStore(const ExchangeObjectName& name, const SharedFrame& frame);
  // A pull's next step where its writer is not connected: one question. Nothing = ask again later.
  std::optional<Result<ReceivedObject>> AskStore(const ExchangeObjectName& name, Range elements,
                                                 int* wrong);

  Clock& clock_;
  Interrupt& interrupt_;
  StoreTransport& store_;
  const ExchangeCodec codec_;
  Executor& executor_;
  // Guards what follows. Who waits for no object waits for its own condition.
  const std::unique_ptr<Monitor> monitor_;
  std::map<ExchangeObjectName, Held> held_;
  std::map<ExchangeObjectName, std::set<PeerId>> asked_;  // of what is not held yet
  std::map<ExchangeObjectName, Awaited> awaited_;
  std::set<PeerId> connected_;
  std::set<PeerId> done_;
  std::set<PeerId> finding_;  // that have not answered
  std::set<WeightsShard> found_;
  std::deque<ExchangeObjectName> to_store_;
  bool storing_ = false;  // the task runs
  bool is_done_ = false;
  Status failure_;  // to store something
  std::unique_ptr<Task> storing_task_;
  std::optional<SlicePeers> peers_;  // calls the above until it has gone
};

}  // namespace lambdadnn
