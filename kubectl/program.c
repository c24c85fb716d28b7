/* build/kubectl: the client alone. */
#include "kubectl/kubectl.h"
#include "net/crypto_part.h"

int main(int argc, char **argv)
{
	crypto_part_use();
	return kubectl_main(argc, argv);
}
