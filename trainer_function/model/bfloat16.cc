// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/bfloat16.h"

#include <string>

#include "common/base/files.h"
#include "common/base/text.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lambdadnn {
namespace {

#ifdef __x86_64__
// Intel's manual, CPUID leaf 7, and Linux' arch_prctl(2) for the registers of AMX.
constexpr unsigned kFeatures = 7;
constexpr unsigned kAmxBf16 = 1u << 22;    // of subleaf 0, EDX
constexpr unsigned kAvx512F = 1u << 16;    // of subleaf 0, EBX
constexpr unsigned kAvx512Bf16 = 1u << 5;  // of subleaf 1, EAX
constexpr int kRequestRegisters = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr int kTileData = 18;

Bfloat16Support FindSupport() {
  Bfloat16Support support;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) == 0) return support;
  const bool amx = (edx & kAmxBf16) != 0;
  const bool avx512 = (ebx & kAvx512F) != 0;
  if (__get_cpuid_count(kFeatures, 1, &eax, &ebx, &ecx, &edx) == 0) return support;
  support.avx512_bf16 = avx512 && (eax & kAvx512Bf16) != 0;
  // oneDNN asks the same, and does without AMX where it is refused.
  support.amx_bf16 =
      support.avx512_bf16 && amx && syscall(SYS_arch_prctl, kRequestRegisters, kTileData) == 0;
  return support;
}
#else
Bfloat16Support FindSupport() { return {}; }
#endif

}  // namespace

Result<Precision> ParsePrecision(std::string_view name) {
  if (name.empty()) return Precision::kFloat32;
  if (const auto precision = FindEnum<Precision>(name)) return *precision;
  return InvalidArgumentError(std::string(kPrecisionVariable) + " must be " +
                              Join(EnumNameList<Precision>(), " or ") + ", not '" +
                              std::string(name) + "'");
}

std::string_view Bfloat16InstructionsOf(const Bfloat16Support& support) {
  if (!support.avx512_bf16) return "";
  const std::string largest = LowerCase(support.largest_isa);
  const bool all = largest.empty() || largest == "all" || largest == "default";
  const bool with_amx =
      all || largest.starts_with("avx512_core_amx") || largest.starts_with("avx10");
  if (support.amx_bf16 && with_amx) return "amx_bf16";
  const bool with_bf16 = with_amx || largest == "avx512_core_bf16" || largest == "avx512_core_fp16";
  return with_bf16 ? "avx512_bf16" : "";
}

std::string_view Bfloat16Instructions() {
  static const std::string_view found = [] {
    Bfloat16Support support = FindSupport();
    const std::string largest = GetEnvironment("ONEDNN_MAX_CPU_ISA")
                                    .value_or(GetEnvironment("DNNL_MAX_CPU_ISA").value_or(""));
    support.largest_isa = largest;
    return Bfloat16InstructionsOf(support);
  }();
  return found;
}

Status CheckBfloat16(const Bfloat16Means& means) {
  const std::string field = "spec.training.precision bfloat16 ";
  if (!means.on_processor) {
    return FailedPreconditionError(field + "is for processors; use float32 on GPUs");
  }
  if (means.instructions.empty()) {
    return FailedPreconditionError(
        field +
        "needs a processor with AVX512_BF16 or AMX-BF16, which this one has not; use nodes that "
        "have it (spec.podTemplate.spec.nodeSelector), or float32");
  }
  if (means.has_onednn) return OkStatus();
  return FailedPreconditionError(field +
                                 "needs a LibTorch with oneDNN, which this program has not; use "
                                 "another image of the worker, or float32");
}

}  // namespace lambdadnn
