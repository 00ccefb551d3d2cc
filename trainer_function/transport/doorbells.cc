// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/doorbells.h"

#include <utility>

namespace lambdadnn {

Doorbells::Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request)
    : names_(runtime), peers_(runtime, access, request, *this) {
  peers_.Open();
}

void Doorbells::Ring(const ExchangeObjectName& name) {
  peers_.Send(peers_.ReadersOf(name), FrameType::kDoorbell, EncodeObjectName(name));
}

bool Doorbells::Expects(const ExchangeObjectName& name) const {
  return peers_.IsConnected(peers_.WriterOf(name));
}

std::unique_ptr<ArrivalWatch> Doorbells::Watch(const ExchangeObjectName& name) {
  return names_.Watch(name, peers_.ReadersHere(name));
}

void Doorbells::OnDoorbell(const PeerId&, const ExchangeObjectName& name) { names_.Ring(name); }

void Doorbells::OnLost(const PeerId& peer) {
  // It may have rung before that was known.
  names_.Wake([&](const ExchangeObjectName& name) { return peers_.WriterOf(name) == peer; });
}

}  // namespace lambdadnn
