/* Telling systemd, or whoever else started us in its manner, how we are: sd_notify's protocol, a datagram to the socket of NOTIFY_SOCKET. */
#ifndef C8S_CMD_SERVICE_MANAGER_H
#define C8S_CMD_SERVICE_MANAGER_H

/* Takes the socket's name out of the environment: it is meant for us, not for our children. Before any thread. */
void service_manager_find(void);
/* "READY=1", "STOPPING=1", "STATUS=..."; several in lines. Nothing happens when nobody listens. */
void service_manager_tell(const char *state);

#endif
