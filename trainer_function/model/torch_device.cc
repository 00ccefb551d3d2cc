// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_device.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <string>

#include "trainer_function/model/bfloat16.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/torch_model.h"
#include "trainer_function/model/torch_support.h"

// LibTorch's versions as one number, 2.11 = 211.
#define LAMBDADNN_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace lambdadnn {
namespace {

struct Gpu {
  std::string architecture = "sm_unknown";
  std::string name = "unknown GPU";
};

// From the driver, which LibTorch has loaded already: LibTorch's own way to these needs CUDA's
// headers. The functions and numbers are those of cuda.h, which do not change.
Gpu FindGpu() {
  constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  constexpr int kCapabilityMinor = 76;
  Gpu gpu;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return gpu;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_attribute =
      reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  const auto get_name =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  if (init == nullptr || get == nullptr || get_attribute == nullptr || get_name == nullptr) {
    return gpu;
  }
  int device = 0;
  if (init(0) != 0 || get(&device, 0) != 0) return gpu;
  int major = 0;
  int minor = 0;
  if (get_attribute(&major, kCapabilityMajor, device) == 0 &&
      get_attribute(&minor, kCapabilityMinor, device) == 0) {
    gpu.architecture = "sm_" + std::to_string(major) + std::to_string(minor);
  }
  std::array<char, 80> name{};
  if (get_name(name.data(), static_cast<int>(name.size()) - 1, device) == 0) gpu.name = name.data();
  return gpu;
}

std::string CudaLibraries() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  const long cuda = hooks.versionCUDART();  // 13000 = 13.0
#if LAMBDADNN_TORCH >= 211
  const long cudnn = hooks.versionRuntimeCuDNN();
#else
  const long cudnn = hooks.versionCuDNN();
#endif
  return "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10) +
         ", cuDNN " + std::to_string(cudnn);
}

void ComputeTheSameBitsAgain() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
#if LAMBDADNN_TORCH >= 202
  // Would fill each new tensor, to show who reads what nobody wrote; costs a kernel each.
  context.setDeterministicFillUninitializedMemory(false);
#endif
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
}

Status Unusable(const std::string& what) {
  return FailedPreconditionError("LAMBDADNN_DEVICE=cuda: " + what +
                                 ", or train with LAMBDADNN_DEVICE=cpu");
}

Status PrepareCuda() {
  // Of the two values with which cuBLAS gives the same bits again, the faster one. It is read when
  // the first product is computed.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
  // Set to 1 it would be stronger than LibTorch's own switches.
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  try {
    if (!at::globalContext().hasCUDART()) {
      return Unusable("LibTorch " + TorchVersion() +
                      " of this program has no CUDA; build it with the preset cuda");
    }
    if (!torch::cuda::is_available()) {
      return Unusable("no GPU is here that " + CudaLibraries() +
                      " can use; see whether nvidia-smi finds one, and its driver's version");
    }
    ComputeTheSameBitsAgain();
    at::NoGradGuard no_grad;
    const at::Tensor ones = at::ones({8, 8}, at::TensorOptions(at::kFloat).device(at::kCUDA));
    if (at::mm(ones, ones).sum().item<float>() == 512.0f) return OkStatus();
    return Unusable("the GPU computes wrong products; use another one");
  } catch (const std::exception& error) {
    return Unusable("LibTorch " + TorchVersion() + " cannot use the GPU (" + TorchErrorText(error) +
                    "); use a LibTorch that is made for it and its driver");
  }
}

}  // namespace

Status PrepareDevice(ComputeDevice device, Precision precision) {
  if (precision == Precision::kBfloat16) {
    LDNN_RETURN_IF_ERROR(CheckBfloat16({.on_processor = device == ComputeDevice::kCpu,
                                        .instructions = Bfloat16Instructions(),
                                        .has_onednn = at::hasMKLDNN()}));
  }
  if (device == ComputeDevice::kCpu) return OkStatus();
  static const Status prepared = PrepareCuda();
  return prepared;
}

NumericsFingerprint FingerprintOn(ComputeDevice device, Precision precision) {
  NumericsFingerprint fingerprint{IsaLevel(), TorchVersion() + ", "};
  if (precision == Precision::kBfloat16) {
    fingerprint.isa += "+" + std::string(Bfloat16Instructions());
  }
  if (device == ComputeDevice::kCpu) {
    fingerprint.libtorch += BlasName();
  } else {
    const Gpu gpu = FindGpu();
    fingerprint.isa += "+" + gpu.architecture;
    fingerprint.libtorch += CudaLibraries() + ", " + gpu.name;
  }
  fingerprint.libtorch = fingerprint.libtorch.substr(0, kMaxLibtorchBytes);
  return fingerprint;
}

}  // namespace lambdadnn
