// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/stop_agreement.h"

#include <algorithm>

#include "common/plan/sync_policy.h"

namespace lambdadnn {

StopAgreement::StopAgreement(int64_t last, int64_t pending_stop)
    : last_(last), final_stop_(pending_stop) {}

void StopAgreement::Observe(const ObjectHeader& header) {
  if (header.stop_at == kStopRequested) requested_.store(true);
  if (header.stop_at > 0) {
    (header.stop_is_final ? final_stop_ : slice_stop_).store(header.stop_at);
  }
  if (header.skips_checkpoint) SkipCheckpoint(header.iteration);
}

void StopAgreement::Mark(TransferMetadata* metadata) const {
  const int64_t slice_stop = slice_stop_.load();
  const int64_t final_stop = final_stop_.load();
  if (slice_stop > 0 && (final_stop == 0 || slice_stop < final_stop)) {
    metadata->stop_at = slice_stop;
  } else if (final_stop > 0) {
    metadata->stop_at = final_stop;
    metadata->stop_is_final = true;
  } else if (requested()) {
    metadata->stop_at = kStopRequested;
  }
  metadata->skipped_checkpoint = skipped_checkpoint_.load();
}

void StopAgreement::Answer(int64_t version) {
  if (requested() && slice_stop_.load() == 0 && final_stop_.load() == 0) {
    slice_stop_.store(SyncPolicy::EndToldWith(version));
  }
}

void StopAgreement::Finish(int64_t version) {
  if (final_stop_.load() == 0) final_stop_.store(SyncPolicy::EndToldWith(version));
}

void StopAgreement::SkipCheckpoint(int64_t version) {
  skipped_checkpoint_.store(SyncPolicy::SkipToldWith(version));
}

int64_t StopAgreement::end() const {
  int64_t end = last_;
  if (const int64_t stop = slice_stop_.load(); stop > 0) end = std::min(end, stop);
  if (const int64_t stop = final_stop_.load(); stop > 0) end = std::min(end, stop);
  return end;
}

bool StopAgreement::is_final() const {
  const int64_t final_stop = final_stop_.load();
  return end() == last_ || (final_stop > 0 && end() == final_stop);
}

}  // namespace lambdadnn
