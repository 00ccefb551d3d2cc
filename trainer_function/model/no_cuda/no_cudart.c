// SPDX-License-Identifier: Apache-2.0
// Stands for libcudart.so.13, which upstream's libtorch_cpu.so names although a program on CPUs
// uses nothing of it: what there is of CUDA's runtime on a machine without a device. Symbols that
// are not here are found missing when they are called, which only LibTorch's profiler would do.
enum { kNoDevice = 100 };  // cudaErrorNoDevice

#define NO_DEVICE(name) \
  int name(void);       \
  int name(void) { return kNoDevice; }

NO_DEVICE(cudaDeviceSynchronize)
NO_DEVICE(cudaGetDeviceProperties)

static int None(int* value) {
  *value = 0;
  return kNoDevice;
}

int cudaGetDeviceCount(int* count);
int cudaGetDeviceCount(int* count) { return None(count); }
int cudaDriverGetVersion(int* version);
int cudaDriverGetVersion(int* version) { return None(version); }
int cudaRuntimeGetVersion(int* version);
int cudaRuntimeGetVersion(int* version) { return None(version); }

const char* cudaGetErrorString(int error);
const char* cudaGetErrorString(int error) {
  (void)error;
  return "this program is built without CUDA";
}
